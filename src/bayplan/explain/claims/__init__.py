"""Claims: everything that an explanation asserts, as typed data, and the one sentence that each of them is shown as."""
