"""What a safe fix may do, run under torch: values stay, what was lost arrives, nobody else notices.

Each safe rewrite of each broken random program is played beside the text that it rewrites. Until the first
difference both hold the same values, pass the same gradients and make the same steps; the first difference is
in what the finding says was lost, and all that follows is downstream of it.
"""
