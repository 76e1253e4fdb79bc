"""`top`: the service live; a pure model (samples, rates, rows, frame) apart from polling and the screen."""
