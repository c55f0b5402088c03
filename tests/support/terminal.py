# SPDX-License-Identifier: Apache-2.0
"""terminal.py COLUMNS [--resize WORD COLUMNS] [--interrupt WORD] COMMAND... -
runs a command in a terminal of that width, and prints what a person sees at the
end, without the bars that were erased. When WORD is written, the window gets
another width, or ^C is typed. The last line is "status N", or "signal N". Fails
if a line that is erased later was wider than the window when it was drawn, and
prints all that was written to the file $TRANSCRIPT."""
import fcntl, os, pty, re, struct, sys, termios


def set_columns(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))


class Screen:
    """Understands what a bar needs: colours, the erasing of a line, \\r, \\n."""

    def __init__(self, columns):
        self.columns, self.lines, self.at, self.wide = columns, [''], 0, None
        self.rest = ''  # of a sequence that is not complete yet

    def write(self, text):
        text = self.rest + text
        self.rest = re.search(r'(\x1b(\[[0-9;]*)?)?$', text)[0]
        for part in re.findall(r'\x1b\[[0-9;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+',
                               text[:len(text) - len(self.rest)]):
            if part == '\r':
                self.at = 0
            elif part == '\n':
                self.lines.append('')
                self.at = 0
            elif part == '\x1b[K':
                if len(self.lines[-1]) >= self.columns:
                    self.wide = self.lines[-1]
                self.lines[-1] = self.lines[-1][:self.at]
            elif part[0] != '\x1b':
                line = self.lines[-1]
                self.lines[-1] = line[:self.at] + part + line[self.at + len(part):]
                self.at += len(part)


def main():
    words = sys.argv[1:]
    columns, resize, interrupt = int(words.pop(0)), None, None
    if words[0] == '--resize':
        resize, words = (words[1], int(words[2])), words[3:]
    if words[0] == '--interrupt':
        interrupt, words = words[1], words[2:]
    pid, fd = pty.fork()
    if pid == 0:
        set_columns(0, columns)
        os.execvp(words[0], words)
    screen, written = Screen(columns), ''
    while True:
        try:
            text = os.read(fd, 65536).decode()
        except OSError:
            break
        if not text:
            break
        written += text
        screen.write(text)
        if resize and resize[0] in written:
            set_columns(fd, resize[1])
            # What is under way is still as wide as before.
            screen.columns, resize = max(columns, resize[1]), None
        if interrupt and interrupt in written:
            os.write(fd, b'\x03')
            interrupt = None
    _, status = os.waitpid(pid, 0)
    if 'TRANSCRIPT' in os.environ:
        open(os.environ['TRANSCRIPT'], 'w').write(written)
    print('\n'.join(screen.lines))
    print('signal %d' % os.WTERMSIG(status) if os.WIFSIGNALED(status)
          else 'status %d' % os.WEXITSTATUS(status))
    if screen.wide:
        sys.exit('too wide for the window: ' + screen.wide)


main()
