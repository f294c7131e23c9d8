"""The renames between two programs: what the old one's documents, messages and flags are called in the new one.

tools/renames.json holds, all optional:
  "flags":     {"--old": "--new"}                  in the new program's command line, and in texts
  "arguments": {"--old-flag": {"old": "new"}}      values of a flag, in the new program's command line
  "keys":      [{"path": "plans/*/config/old", "to": "new"}]
  "values":    [{"path": "plans/*/config/home", "from": "old", "to": "new"}]     of strings and the like
  "text":      [{"from": "regular expression", "to": "replacement"}]             in strings of documents, and stderr
  "ignore":    [{"path": "plans/*/config/kernel", "why": "..."}]                 not compared; on either side
A path is that of the old document, "*" any one key or index and "**" any number of them. An ignored path is given in
the new names. Text rules apply in their order, and to keys not at all.
"""
import functools
import json
import re

CONTEXT = [f"**/context/{key}" for key in ("version", "command", "kernel_hash", "machine_hash")]
KNOWN = {"flags", "arguments", "keys", "values", "text", "ignore"}


def path_pattern(path):
    parts = ["(?:[^/]+/)*" if part == "**" else ("[^/]+" if part == "*" else re.escape(part)) + "/"
             for part in path.split("/")]
    return re.compile("".join(parts) + r"\Z")


def text_rules(table):
    rules = [(re.compile(re.escape(old) + r"(?![\w-])"), new.replace("\\", r"\\"))
             for old, new in table.get("flags", {}).items()]
    return rules + [(re.compile(rule["from"]), rule["to"]) for rule in table.get("text", [])]


class Renames:
    def __init__(self, table):
        unknown = set(table) - KNOWN
        if unknown:
            raise ValueError(f"unknown parts {sorted(unknown)}; known are {sorted(KNOWN)}")
        self.flags, self.arguments = table.get("flags", {}), table.get("arguments", {})
        self.keys = [(path_pattern(rule["path"]), rule["to"]) for rule in table.get("keys", [])]
        self.values = [(path_pattern(rule["path"]), rule["from"], rule["to"]) for rule in table.get("values", [])]
        self.text_rules = text_rules(table)
        self.ignored = [path_pattern(rule["path"]) for rule in table.get("ignore", [])]
        self.ignored += [path_pattern(path) for path in CONTEXT]
        self.text = functools.lru_cache(maxsize=100000)(self._text)
        self.key_at = functools.lru_cache(maxsize=None)(self._key_at)
        self.values_at = functools.lru_cache(maxsize=None)(self._values_at)
        self.ignores = functools.lru_cache(maxsize=None)(self._ignores)
        self.empty = not (self.keys or self.values or self.text_rules)

    @staticmethod
    def read(file):
        with open(file, encoding="utf-8") as stream:
            return Renames(json.load(stream))

    def command(self, arguments):
        """The old program's arguments as the new one takes them."""
        renamed, values = [], {}
        for argument in arguments:
            flag, equals, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
            renamed.append(values.get(argument, self.flags.get(flag, flag) + equals + value))
            values = self.arguments.get(argument, {})
        return renamed

    def document(self, value, path=""):
        """The old document under the new names. `path` ends with "/", and has "*" for an index."""
        if self.empty:
            return value
        if isinstance(value, dict):
            return {self.key_at(path + key + "/", key): self.document(inner, path + key + "/")
                    for key, inner in value.items()}
        if isinstance(value, list):
            return [self.document(inner, path + "*/") for inner in value]
        for old, new in self.values_at(path):
            if type(value) is type(old) and value == old:
                return new
        return self.text(value) if isinstance(value, str) else value

    def _key_at(self, path, key):
        return next((new for pattern, new in self.keys if pattern.match(path)), key)

    def _values_at(self, path):
        return [(old, new) for pattern, old, new in self.values if pattern.match(path)]

    def _ignores(self, path):
        return any(pattern.match(path) for pattern in self.ignored)

    def _text(self, text):
        for pattern, new in self.text_rules:
            text = pattern.sub(new, text)
        return text
