"""What is stated of masked sampling and of training for it, by the numbering of the talk; and what holds."""

from odesim.models.gibbs._decoding_claims import DECODING
from odesim.models.gibbs._information_claims import INFORMATION
from odesim.models.gibbs._spectra_claims import SPECTRA

CLAIMS = (*INFORMATION, *SPECTRA, *DECODING)
