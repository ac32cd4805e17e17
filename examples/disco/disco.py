"""What a worker of Disco needs, in Python: copy this file, and write a map and a reduce.

A worker says NAME SP LENGTH SP JSON NL on its output, and reads one such reply for each message.
"""
import json, os, sys, time, traceback, urllib.parse, urllib.request

replies = sys.stdin.buffer
messages = os.fdopen(os.dup(1), "wb")


def ask(name, payload=""):
    """Sends a message, and returns the name and the payload of its reply."""
    body = json.dumps(payload).encode()
    messages.write(b"%s %d %s\n" % (name.encode(), len(body), body))
    messages.flush()
    head = b""
    while head.count(b" ") < 2:
        byte = replies.read(1)
        if not byte:
            raise EOFError("the host has gone")
        head += byte
    name, length, _ = head.split(b" ")
    return name.decode(), json.loads(replies.read(int(length) + 1))


class Messages:
    """Stands for standard output and error: what the worker prints is a MSG a line."""

    def write(self, text):
        for line in filter(None, text.splitlines()):
            ask("MSG", line)

    def flush(self):
        pass


def open_url(url, task):
    """Opens a replica: a file of this host as a file, all others by HTTP."""
    scheme, _, rest = url.partition("://")
    if scheme == "raw":
        return [urllib.parse.unquote_to_bytes(rest)]
    host, _, path = rest.partition("/")
    if scheme in ("disco", "dir"):
        if host == task["host"]:
            return open(os.path.join(task["disco_data"], urllib.parse.unquote(path[len("disco/"):])), "rb")
        url = "http://%s:%d/%s" % (host, task["disco_port"], path)
    return urllib.request.urlopen(url, timeout=60)


def read(id, replicas, task):
    """Yields the lines of an input, of the first of its replicas that can be read."""
    while True:
        for replica, url in replicas:
            try:
                lines = list(open_url(url, task))
            except OSError:
                continue
            yield from lines
            return
        name, answer = ask("INPUT_ERR", [id, [replica for replica, _ in replicas]])
        if name == "FAIL":
            raise OSError("input %d cannot be read from any of %s" % (id, [url for _, url in replicas]))
        if name == "WAIT":
            time.sleep(answer)
            _, (_, rows) = ask("INPUT", ["include", [id]])
            answer = rows[0][3]
        replicas = answer


def inputs(task):
    """Yields the label and the lines of each input, until no more can come."""
    seen, flag = [], "more"
    while flag == "more":
        _, (flag, rows) = ask("INPUT", ["exclude", seen])
        for id, _, label, replicas in rows:
            seen.append(id)
            if replicas[0][1].startswith("dir://"):  # an index: LABEL URL SIZE in each line
                for line in read(id, replicas, task):
                    of, url, _ = line.split()
                    if label in ("all", int(of)):
                        yield int(of), open_url(url.decode(), task)
            else:
                yield label, read(id, replicas, task)


def run(**stages):
    """Runs the stage of the task: a function of the task that yields (label, bytes) for each output."""
    sys.stdout = sys.stderr = Messages()
    try:
        ask("WORKER", {"version": "1.1", "pid": os.getpid()})
        _, task = ask("TASK")
        for number, (label, content) in enumerate(stages[task["stage"]](task)):
            name = "%s-%d-%d-%d" % (task["stage"], task["taskid"], os.getpid(), number)
            with open(name, "wb") as f:
                f.write(content)
                f.flush()
                os.fsync(f.fileno())
            ask("OUTPUT", [label, name, len(content)])
        ask("DONE")
    except OSError as e:  # of an input or a disk: another attempt may end better
        ask("ERROR", str(e))
    except Exception:
        ask("FATAL", traceback.format_exc())
