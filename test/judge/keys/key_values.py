"""What the formats' keys are set to."""


class Absent:
    def __repr__(self):
        return "absent"


ABSENT = Absent()
# What any key may be set to, beside its own values.
USUAL = [ABSENT, None, True, False, 0, 1, 3, 0.5, "", "none", "other", [], {}, [1], ["other"], {"other": 1}]
