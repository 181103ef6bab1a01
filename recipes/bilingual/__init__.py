"""The training of the bilingual model twinvec-ko: its texts, its teachers, and the loop."""
