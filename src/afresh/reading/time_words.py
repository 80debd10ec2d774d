"""The words in which pages tell the time: names of days and months, units of time, halves of a day.

They change with a clock as its digits do. "Tue 30 Jun, 11:59 pm" and "Wed 1 Jul, 12:04 am" are one text that tells
another time, so these words are masked together with those that have a digit.
"""

import numpy as np
from numpy.typing import NDArray

_WORD = (1 << 64) - 1
SLOTS_BITS = 16  # of a mark: which bit of `LIKELY` says that a word may be one of these

_WORDS = """
  monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
  january february march april may june july august september october november december
  jan feb mar apr jun jul aug sep sept oct nov dec am pm a.m p.m noon midnight
  second seconds sec secs minute minutes min mins hour hours hr hrs day days week weeks month months year years

  montag dienstag mittwoch donnerstag freitag samstag sonntag sonnabend mo di mi do fr sa so
  januar jänner februar märz mai juni juli oktober dezember mär okt dez
  sekunde sekunden minuten stunde stunden std tag tage tagen woche wochen monat monate monaten jahr jahre jahren

  lundi mardi mercredi jeudi vendredi samedi dimanche lun mer jeu ven sam dim
  janvier février mars avril juin juillet août septembre octobre novembre décembre janv févr avr juil déc
  seconde secondes heure heures jour jours semaine semaines mois an ans

  lunes martes miércoles jueves viernes sábado domingo mié jue vie sáb dom
  enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre ene abr ago dic
  segundo segundos minuto minutos hora horas día días semana semanas mes meses año años

  lunedì martedì mercoledì giovedì venerdì sabato domenica gio sab
  gennaio febbraio aprile maggio giugno luglio settembre ottobre novembre dicembre gen mag giu lug set ott
  secondo secondi minuti ora ore giorno giorni settimana settimane mese mesi anno anni

  segunda terça quarta quinta sexta segunda-feira terça-feira quarta-feira quinta-feira sexta-feira seg ter qua qui sex
  janeiro fevereiro março maio junho julho setembro outubro novembro dezembro fev dez dia dias mês

  maandag dinsdag woensdag donderdag vrijdag zaterdag zondag ma wo vr za zo
  januari februari maart mei augustus mrt seconden minuut uur uren dag dagen weken maand maanden jaar jaren
"""


def _forms() -> set[str]:
    """Every word as it may be written, with what may stand right behind it."""
    cased = {form for word in _WORDS.split() for form in (word, word.capitalize(), word.upper())}
    return {word + sign for word in cased for sign in ("", ",", ".", ":", ".,")}


def _mark(word: str, start: int, golden: int) -> int:
    """The mark of a word, as the compiled pass makes it."""
    mark = start
    for byte in word.encode():
        mark = (((mark << 5) | (mark >> 59)) + byte * golden) & _WORD
    return mark


def time_words(start: int, golden: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The sorted marks of all these words, and bits that tell at a glance that most other words are none of them."""
    marks = np.array(sorted({_mark(word, start, golden) for word in _forms()}), np.uint64)
    likely = np.zeros((1 << SLOTS_BITS) // 64, np.uint64)
    for mark in marks.tolist():
        slot = slot_of(mark, golden)
        likely[slot >> 6] |= np.uint64(1 << (slot & 63))
    return marks, likely


def slot_of(mark: int, golden: int) -> int:
    """Which bit stands for a mark: marks of short words differ in their low bits alone."""
    return ((mark * golden) & _WORD) >> (64 - SLOTS_BITS)
