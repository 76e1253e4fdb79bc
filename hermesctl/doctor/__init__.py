"""`doctor`: small checks of the host, each with a fact and a hint; none changes anything."""
