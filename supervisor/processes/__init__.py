"""Worker processes: started by a warm zygote, held in cells, killed as one, with a proof."""
