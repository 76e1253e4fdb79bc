"""`doctor`: small checks of the host, each with what was found and what mends it; none changes anything."""
