"""The tools that agents see, one file each, with the words the model reads in ``prompts``; and the gate before them."""
