"""The server: from a request to an answer, who may ask, what it says about itself, and its two transports."""
