"""``offline/reader``: a judge made of rules, word lists and a few fitted weights; see docs/recovery.md."""
