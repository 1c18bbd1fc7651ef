"""The tools that agents call, one file each, and the gate before them. Their descriptions are in ``prompts``."""
