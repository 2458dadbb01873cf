"""Integer expressions over symbolic sizes: the one algebra of indices."""
