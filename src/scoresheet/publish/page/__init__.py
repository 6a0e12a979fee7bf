"""The report and the comparison as one HTML file each.

`model` and `comparing` say what a page shows, `pictures` draws, `render` writes; `folder` reads a run for it.
"""
