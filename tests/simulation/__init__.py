"""The rules under a cruel world, and proof that each of their guards is needed."""
