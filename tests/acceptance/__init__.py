"""The whole service, one real supervisor a test: what a person or a client sees of it."""
