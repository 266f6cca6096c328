"""A candidate on kazoo, for tests: kazoo-peer.py hosts path id.

Reads stand, resign and who from standard input; writes leading, lost, resigning, out and "who id".
"""

import os
import sys
import threading

from kazoo.client import KazooClient, KazooState

client = KazooClient(hosts=sys.argv[1], timeout=2.0)
path, name = sys.argv[2], sys.argv[3]
lock = threading.Lock()


def say(line):
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


client.add_listener(lambda state: say("lost") if state != KazooState.CONNECTED else None)
client.start(timeout=20)


class Candidacy:
    def __init__(self):
        self.resigned = threading.Event()
        self.election = client.Election(path, name)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        self.election.run(self.lead)

    def lead(self):
        say("leading")
        self.resigned.wait()


candidacy = None
say("ready")
for line in sys.stdin:
    command = line.strip()
    if command == "stand":
        candidacy = Candidacy()
    elif command == "who":
        contenders = client.Election(path, "observer").contenders()
        say("who " + (contenders[0] if contenders else ""))
    elif command == "resign":
        say("resigning")
        candidacy.resigned.set()
        candidacy.thread.join()
        say("out")
client.stop()
os._exit(0)
