"""Runs on disk: zarr v3 folders that xarray reads, and their export to csv and netCDF.

zarr and xarray are imported when a run is read or written, not before.
"""

from odesim.store.export import FORMATS, export_run
from odesim.store.paths import check_file, check_folder, check_run
from odesim.store.plain_data import plain
from odesim.store.read import open_run, read_solution
from odesim.store.write import Stored, write_solution

__all__ = [
    "FORMATS",
    "Stored",
    "check_file",
    "check_folder",
    "check_run",
    "export_run",
    "open_run",
    "plain",
    "read_solution",
    "write_solution",
]
