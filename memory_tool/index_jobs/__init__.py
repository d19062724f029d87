"""Jobs that keep the indexes true to the store: apply, rebuild, check, move, back up."""
