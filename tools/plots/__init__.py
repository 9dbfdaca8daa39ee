"""The figures of experiments, a module each, found by its experiment's name.

A module has

  figures(data)   yields data.Figure, one a file: its name, a matplotlib figure, title and caption
  tables(data)    yields data.Table, shown on the page beside the figures

`data` is a data.Data, the records. Colours, markers and axes that figures share are in style.py.
"""
