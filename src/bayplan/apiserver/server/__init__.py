"""The server: requests to answers, access, discovery, and the two transports."""
