"""The input: keys, prompt, drafts, history, files to mention, and the last line with its answers."""
