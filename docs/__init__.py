"""The pages for readers, and the script that draws some of them from the code."""
