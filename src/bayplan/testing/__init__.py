"""THE KIT, public: builders, a harness, expectations and strategies for people who write plugins."""
