"""The hands: one long-term memory kept over a store of truth and two search indexes."""
