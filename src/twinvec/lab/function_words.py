"""English words that carry grammar: articles, pronouns, prepositions, conjunctions, auxiliaries, particles."""

from __future__ import annotations

__all__ = ["FUNCTION_WORDS"]

ARTICLES = "a an the this that these those each every either neither some any no all both half such another other"
PRONOUNS = (
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves one ones who whom whose which what whoever whatever "
    "someone somebody something anyone anybody anything everyone everybody everything nobody nothing none"
)
PREPOSITIONS = (
    "of in on at to from by with without within into onto upon over under above below between among through across "
    "against about around after before behind beside besides beyond during except for inside near off out outside "
    "past per since than toward towards until till up down via as like along amid despite throughout"
)
CONJUNCTIONS = "and or but nor so yet if unless although though because while whereas whether when where why how then"
AUXILIARIES = (
    "be am is are was were been being have has had having do does did doing done will would shall should can could may "
    "might must ought need dare cannot"
)
PARTICLES = "not there here too also very just only even still more most less least much many few own same"
CONTRACTED = "s t re ve ll d m don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn"  # don't

FUNCTION_WORDS: frozenset[str] = frozenset(
    " ".join((ARTICLES, PRONOUNS, PREPOSITIONS, CONJUNCTIONS, AUXILIARIES, PARTICLES, CONTRACTED)).split()
)
