# SPDX-License-Identifier: Apache-2.0
"""
horovodrun: says in the words of this library's launchers what a command line for
Horovod asks for. mpi-launch.sh starts jobs with mpirun; hvd-run starts elastic jobs of
this host, or of those that a script names, whose workers may be lost and come back,
without MPI.

The launchers set up the environment of Python. This file uses nothing but Python's own
library, since it may run where neither hvd nor numpy can be imported.
"""
import argparse
import os
import shlex
import shutil
import sys

NAME = "horovodrun"
_COMPAT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

#: Options with which Horovod tunes what this library has not: they are accepted.
IGNORED = {"--cycle-time-ms": "nothing polls", "--cache-capacity": "nothing is cached",
           "--num-nccl-streams": "there are no GPUs", "--thread-affinity": "mpirun binds ranks",
           "--mpi-threads-disable": "MPI is called by one thread at a time",
           "--start-timeout": "HVD_START_TIME is the library's",
           "--elastic-timeout": "HVD_START_TIME is the library's"}
#: And those of them that have no value.
IGNORED_FLAGS = {"--gloo": "one library does both", "--mpi": "it is used anyway",
                 "--disable-cache": "nothing is cached",
                 "--tcp": "HVD_TRANSPORT says what moves data",
                 "--hierarchical-allreduce": "it is chosen by costs",
                 "--hierarchical-allgather": "it is chosen by costs",
                 "--no-hierarchical-allreduce": "it is chosen by costs",
                 "--no-hierarchical-allgather": "it is chosen by costs"}
#: Options that are variables of the library: the variable, and what the value becomes.
VARIABLES = {"--timeline-filename": ("HVD_TIMELINE", str),
             "--fusion-threshold-mb": ("HVD_FUSION_THRESHOLD", "{}MB".format),
             "--autotune-log-file": ("HVD_AUTOTUNE_LOG", str),
             "--stall-check-warning-time-seconds": ("HVD_STALL_CHECK_TIME", "{}s".format),
             "--stall-check-shutdown-time-seconds": ("HVD_STALL_SHUTDOWN_TIME", "{}s".format),
             "--log-level": ("HVD_LOG", lambda level: {
                 "fatal": "error"}.get(level.lower(), level.lower()))}
VARIABLE_FLAGS = {"--timeline-mark-cycles": ("HVD_TIMELINE_MARK_CYCLES", "1"),
                  "--no-timeline-mark-cycles": ("HVD_TIMELINE_MARK_CYCLES", "0"),
                  "--autotune": ("HVD_AUTOTUNE", "1"), "--no-autotune": ("HVD_AUTOTUNE", "0"),
                  "--no-stall-check": ("HVD_STALL_CHECK_TIME", "0")}


def _wrong(text):
    sys.stderr.write(f"{NAME}: {text}; see {NAME} --help\n")
    sys.exit(2)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        _wrong(message)


def _count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of processes (1, 2, ...)")
    return int(text)


def _parser():
    parser = _Parser(NAME, f"{NAME} -np N [option...] program [argument...]",
                     "Start a program for Horovod on N ranks with this library.",
                     allow_abbrev=False)
    add = parser.add_argument
    add("-np", "--num-proc", type=_count, metavar="N", help="start N processes")
    add("-H", "--hosts", metavar="H1:S1,...", help="use these hosts, with so many on each")
    add("-hostfile", "--hostfile", metavar="FILE", help="read the hosts from a file")
    add("-x", dest="passed", action="append", default=[], metavar="VAR[=VALUE]",
        help="pass a variable to the processes")
    add("-p", "--ssh-port", metavar="N", help="the port of ssh on other hosts")
    add("-i", "--ssh-identity-file", metavar="FILE", help="the key for ssh")
    add("--network-interfaces", "--network-interface", metavar="NAME,...",
        help="the interfaces that MPI uses between hosts")
    add("--mpi-args", default="", metavar="ARGUMENTS", help="arguments for mpirun")
    add("--verbose", action="store_true", help="show the command")
    add("--dry-run", action="store_true", help="show the command, and run nothing")
    add("-v", "--version", action="store_true", help="print the version")
    add("-cb", "--check-build", action="store_true", help="show what is built in")
    elastic = parser.add_argument_group("elastic jobs: processes may be lost, and come back")
    elastic.add_argument("--min-np", "--min-num-proc", type=_count, metavar="N",
                         help="go on as long as there are N")
    elastic.add_argument("--max-np", "--max-num-proc", type=_count, metavar="N",
                         help="never have more than N")
    elastic.add_argument("--host-discovery-script", metavar="FILE",
                         help="a program that prints a line HOST:N for each host is asked once "
                         "a second how many may run, and where")
    elastic.add_argument("--reset-limit", type=_count, default=100, metavar="N",
                         help="start a process again at most N times (100)")
    library = parser.add_argument_group("settings of the library")
    for option, (variable, _) in VARIABLES.items():
        library.add_argument(option, dest=option, metavar="VALUE", help=f"sets {variable}")
    for option, (variable, value) in VARIABLE_FLAGS.items():
        library.add_argument(option, dest=option, action="store_true",
                             help=f"sets {variable}={value}")
    ignored = parser.add_argument_group("accepted, without effect")
    for option, why in IGNORED.items():
        ignored.add_argument(option, dest=option, metavar="VALUE", help=why)
    for option, why in IGNORED_FLAGS.items():
        ignored.add_argument(option, dest=option, action="store_true", help=why)
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _found(program):
    """Returns the path of a program of this library: in the build, below the prefix of
    the installation, or where the shell would find it."""
    for folder in ("../../../../bin", "../../../../.."):
        path = os.path.normpath(os.path.join(_COMPAT, folder, program))
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    path = shutil.which(program)
    if path is None:
        sys.stderr.write(f"{NAME}: there is no {program} near {_COMPAT}, or in PATH: make "
                         "install puts it below the prefix\n")
        sys.exit(127)
    return path


def _settings(options):
    """Returns the variables that options of the library set."""
    values, found = vars(options), {}
    for option, (variable, change) in VARIABLES.items():
        if values[option] is not None:
            found[variable] = change(values[option])
    for option, (variable, value) in VARIABLE_FLAGS.items():
        if values[option]:
            found[variable] = value
    return found


def _ssh_options(options):
    found = []
    if options.ssh_port:
        found += ["-p", options.ssh_port]
    if options.ssh_identity_file:
        found += ["-i", options.ssh_identity_file]
    return found


def _with_mpi(options):
    """Returns the command that starts a job with mpirun."""
    command = [_found("mpi-launch.sh"), "--horovod", "-np", str(options.num_proc)]
    if options.min_np:
        command += ["--elastic", "--min-np", str(options.min_np)]
    if options.hosts:
        command += ["-H", options.hosts]
    if options.hostfile:
        command += ["--hostfile", options.hostfile]
    passed = list(options.passed)
    if options.hosts or options.hostfile:  # Horovod passes everything
        passed += [name for name in sorted(os.environ)
                   if name.startswith(("HOROVOD_", "OMP_", "OPENBLAS_"))]
    for variable in passed:
        command += ["-x", variable]
    ssh = _ssh_options(options)
    arguments = shlex.split(options.mpi_args)
    if ssh:
        arguments += ["--mca", "plm_rsh_args", " ".join(ssh)]
    if options.network_interfaces:
        for part in "btl_tcp_if_include", "oob_tcp_if_include":
            arguments += ["--mca", part, options.network_interfaces]
    for argument in arguments:
        command += ["--mpi-arg", argument]
    if options.verbose:
        command.append("--verbose")
    return command + ["--"] + options.command


def _elastic(options):
    """Returns the command that starts an elastic job on this host, or on those that a
    script names, without MPI."""
    least = options.min_np or options.num_proc or 1
    most = max(options.max_np or options.num_proc or least, least)
    command = [_found("hvd-run"), f"--elastic={least}:{most}",
               f"--restarts={options.reset_limit}"]
    if options.host_discovery_script:
        ssh = ["ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5"]
        command += [f"--host-discovery-script={options.host_discovery_script}",
                    f"--rsh={shlex.join(ssh + _ssh_options(options))}"]
    for variable in options.passed:
        name, equals, value = variable.partition("=")
        if equals:
            os.environ[name] = value
    package = os.path.dirname(os.path.dirname(_COMPAT))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([_COMPAT, package] + ([before] if before else []))
    return command + ["--"] + options.command


def command_of(options):
    """Returns the command that does what parsed options say, and sets the environment in
    which it is to run."""
    if not options.command:
        _wrong("the program is missing")
    if options.hosts and options.hostfile:
        _wrong("-H and --hostfile exclude each other")
    discovers = options.host_discovery_script is not None
    grows = discovers or options.min_np or options.max_np
    if not (options.num_proc or grows):
        _wrong("the number of processes is missing: -np N")
    elsewhere = options.hosts or options.hostfile
    if elsewhere and (discovers or options.max_np):
        _wrong("--max-np is for processes of this host, and --host-discovery-script names "
               "hosts itself: leave -H and --hostfile out")
    if elsewhere and not options.num_proc:
        _wrong("-H and --hostfile need -np N")
    for low, high in (("min_np", "max_np"), ("min_np", "num_proc"), ("num_proc", "max_np")):
        few, many = getattr(options, low), getattr(options, high)
        if few and many and few > many:
            _wrong(f"{few} processes at least, and {many} at most, make no sense")
    for table in IGNORED, IGNORED_FLAGS:
        for option, why in table.items():
            if vars(options)[option]:
                sys.stderr.write(f"{NAME}: {option} has no effect here: {why}\n")
    os.environ.update(_settings(options))
    return _elastic(options) if grows and not elsewhere else _with_mpi(options)


def run_commandline(arguments=None):
    """Does what a command line asks for, in place of this process."""
    options = _parser().parse_args(arguments)
    if options.version:
        print("0.28.1 (the version whose names and options these are)")
        return
    if options.check_build:
        command = [_found("hvd-info"), "--check-build"]
    else:
        command = command_of(options)
    if options.verbose or options.dry_run:
        settings = [f"{name}={shlex.quote(value)}" for name, value in
                    sorted(_settings(options).items())]
        print(*settings, shlex.join(command), file=sys.stdout if options.dry_run else sys.stderr)
    if not options.dry_run:
        sys.stderr.flush()
        os.execv(command[0], command)


if __name__ == "__main__":
    run_commandline()
