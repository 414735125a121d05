"""The playground: an in-context learner seen from inside, as one page for a browser."""

from algoscope.playground.play import Playground as Playground
from algoscope.playground.play import play as play
