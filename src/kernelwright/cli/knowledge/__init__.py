"""What the team knows: skills learnt from runs, listed, compared, switched off, installed."""
