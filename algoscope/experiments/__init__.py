"""The paper's figures as experiments that anyone can rerun (paper §4, §5, app. C–F)."""
