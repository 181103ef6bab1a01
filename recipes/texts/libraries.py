"""Sources of documentation: manuals of three projects, and the docstrings of scientific and other Python libraries."""

from __future__ import annotations

from texts.readers import read_manuals
from texts.source import Package, Source
from texts.special_readers import read_docstrings

__all__ = ["LIBRARIES"]

BSD = "BSD-3-Clause"
MANUALS = (
    Source(
        "django",
        "manual",
        Package("pypi-source", "django", "5.2.19", BSD),
        read_manuals(r"/docs/(?!releases).*\.txt$"),
        6000,
        1500,
    ),
    Source(
        "pyramid",
        "manual",
        Package("pypi-source", "pyramid", "2.1", "BSD-derived (Repoze)"),
        read_manuals(r"/docs/.*\.rst$"),
        3000,
        600,
    ),
    Source(
        "sympy",
        "manual",
        Package("pypi-source", "sympy", "1.14.0", BSD),
        read_manuals(r"/doc/src/.*\.(?:rst|md)$"),
        3000,
        600,
    ),
)
WITH_DOCSTRINGS = (
    Package("pypi", "scipy", "1.18.1", BSD),
    Package("pypi", "scikit-learn", "1.9.1", BSD),
    Package("pypi", "scikit-image", "0.26.0", BSD),
    Package("pypi", "statsmodels", "0.15.0", BSD),
    Package("pypi", "numpy", "2.5.4", BSD),
    Package("pypi", "pandas", "3.1.1", BSD),
    Package("pypi", "astropy", "8.0.2", BSD),
    Package("pypi", "nltk", "3.10.4", "Apache-2.0"),
    Package("pypi", "mne", "1.13.2", BSD),
    Package("pypi", "biopython", "1.88", "Biopython License Agreement"),
    Package("pypi", "obspy", "1.5.1", "LGPL-3.0"),
    Package("pypi", "metpy", "1.7.1", BSD),
    Package("pypi", "plasmapy", "2026.2.0", BSD),
    Package("pypi", "xclim", "0.62.0", "Apache-2.0"),
    Package("pypi", "fluids", "1.3.1", "MIT"),
    Package("pypi", "aerosandbox", "4.2.10", "MIT"),
    Package("pypi", "openmdao", "3.45.1", "Apache-2.0"),
    Package("pypi", "control", "0.10.2", BSD),
    Package("pypi", "galpy", "1.12.0", BSD),
    Package("pypi", "landlab", "2.11.0", "MIT"),
    Package("pypi", "pymatgen", "2026.10.24", "MIT"),
    Package("pypi", "sasmodels", "1.1.0", "public domain"),
    Package("pypi", "rocketpy", "1.13.0", "MIT"),
    Package("pypi", "ht", "1.2.0", "MIT"),
    Package("pypi", "thermo", "0.6.1", "MIT"),
    Package("pypi", "openaerostruct", "2.12.0", "Apache-2.0"),
    Package("pypi", "dymos", "1.15.1", "Apache-2.0"),
    Package("pypi", "pybamm", "26.10.1.1", BSD),
    Package("pypi", "floris", "4.7", BSD),
    Package("pypi", "sunpy", "8.0.1", BSD),
    Package("pypi", "ase", "3.29.0", "LGPL-2.1"),
    Package("pypi", "qutip", "5.3.1", BSD),
    Package("pypi", "cantera", "3.2.0", BSD),
    Package("pypi", "pvlib", "0.16.1", BSD),
    Package("pypi", "neurokit2", "0.2.13", "MIT"),
    Package("pypi", "pennylane", "0.45.1", "Apache-2.0"),
    Package("pypi", "qiskit", "2.6.1", "Apache-2.0"),
    Package("pypi", "sqlalchemy", "2.1.8", "MIT"),
    Package("pypi", "twisted", "26.10.0", "MIT"),
    Package("pypi", "transformers", "5.22.2", "Apache-2.0"),
)
LIBRARIES = (
    *MANUALS,
    *(Source(package.name, "docstrings", package, read_docstrings, 700, 500) for package in WITH_DOCSTRINGS),
)
