"""What three dialects of model APIs say, read from their bytes. Pure, and total: nothing a peer sends raises."""
