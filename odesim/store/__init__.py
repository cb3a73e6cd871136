"""Runs on disk: zarr v3 folders that xarray reads, and export to csv and netCDF.

zarr and xarray are imported when a run is read or written, not before.
"""
