"""Fleets of files: from locations to a dataset on any file system that fsspec knows, through Dask.

It stands at the edge, as `cli` does, and knows the whole chain; nothing else knows it.
"""
