"""What all tests share."""

import signal

# A run in the background may have been told to ignore Ctrl-C, and so would the processes that
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
