"""Hard weather for as long as one likes: everything dies at random while clients work; then the checker."""
