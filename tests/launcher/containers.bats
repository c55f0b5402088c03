# SPDX-License-Identifier: Apache-2.0
# The Dockerfile and the MPIJob of the documents: they agree, the operator knows
# all fields of the job, and the image has what the programs are linked with.
# There is neither Docker nor Kubernetes here; with HVD_TEST_FULL the steps of the
# Dockerfile run in a fresh Debian, and the job in two hosts of tests/hosts/net.

setup_file() {
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export ROOT
    export DOCKERFILE=$ROOT/docs/cluster/Dockerfile
    export MPIJOB=$ROOT/docs/kubernetes/mpijob.yaml
}

@test "the operator knows every field of the MPIJob, by name and type" {
    /usr/bin/python3 - "$MPIJOB" "$DOCKERFILE" <<'END'
import re, sys, yaml

(job,) = yaml.safe_load_all(open(sys.argv[1]))
# What the operator's kubeflow.org/v2beta1 has, and of pods what stands here. A
# list has one kind of items; a type, a value of it; a set, one of its members.
POLICY = {"Never", "OnFailure"}
POD = {"containers": [{
           "name": str, "image": str, "command": [str], "args": [str],
           "securityContext": {"runAsUser": int, "runAsNonRoot": bool},
           "ports": [{"containerPort": int}],
           "readinessProbe": {"tcpSocket": {"port": int}, "periodSeconds": int},
           "resources": {"requests": {"cpu": str, "memory": str},
                         "limits": {"cpu": str, "memory": str}},
           "volumeMounts": [{"name": str, "mountPath": str}]}],
       "volumes": [{"name": str, "emptyDir": {"medium": {"Memory"}, "sizeLimit": str}}]}
REPLICA = {"replicas": int, "restartPolicy": POLICY, "template": {"spec": POD}}
JOB = {"apiVersion": {"kubeflow.org/v2beta1"}, "kind": {"MPIJob"},
       "metadata": {"name": str},
       "spec": {"slotsPerWorker": int, "sshAuthMountPath": str,
                "mpiImplementation": {"OpenMPI", "Intel", "MPICH"},
                "launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
                "runPolicy": {"cleanPodPolicy": {"All", "Running", "None"},
                              "ttlSecondsAfterFinished": int, "backoffLimit": int,
                              "activeDeadlineSeconds": int, "suspend": bool},
                "mpiReplicaSpecs": {"Launcher": REPLICA, "Worker": REPLICA}}}

def check(value, schema, where):
    if isinstance(schema, dict):
        assert isinstance(value, dict), f"{where}: {value!r}"
        for key, part in value.items():
            assert key in schema, f"{where}.{key} is unknown"
            check(part, schema[key], f"{where}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, f"{where}: {value!r}"
        for part in value:
            check(part, schema[0], where)
    elif isinstance(schema, set):
        assert value in schema, f"{where}: {value!r}"
    else:
        assert type(value) is schema, f"{where}: {value!r}"

check(job, JOB, "job")
spec = job["spec"]
launcher, worker = (spec["mpiReplicaSpecs"][kind]["template"]["spec"]
                    for kind in ("Launcher", "Worker"))
(launcher,), (worker,), volumes = (launcher["containers"], worker["containers"],
                                   worker["volumes"])
assert spec["mpiReplicaSpecs"]["Launcher"]["replicas"] == 1
assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] > 1
assert [v["name"] for v in volumes] == [m["name"] for m in worker["volumeMounts"]]
assert worker["volumeMounts"][0]["mountPath"] == "/dev/shm"

# The image's user, key, port and configuration are those of the job.
image = open(sys.argv[2]).read()
user = int(re.search(r"useradd --uid (\d+)", image)[1])
assert user == launcher["securityContext"]["runAsUser"]
assert user == worker["securityContext"]["runAsUser"]
assert f"HostKey {spec['sshAuthMountPath']}/id_rsa" in image
port = worker["ports"][0]["containerPort"]
assert worker["readinessProbe"]["tcpSocket"]["port"] == port
assert re.findall(r"Port (\d+)", image) == [str(port)] * 2
assert worker["command"] == ["/usr/sbin/sshd"] and worker["args"][-1] in image
END
}

@test "the image has the libraries that the programs need" {
    local build=${HVD_BUILD:-$ROOT/build}
    cd "$BATS_TEST_TMPDIR"
    # The packages of the second stage.
    sed '1,/^COPY --from/!d; 1,/^FROM debian:bookworm$/d' "$DOCKERFILE" |
        tr -d '\\' | tr -s ' ' '\n' | grep -xE '[a-z0-9.+-]+[a-z0-9]' |
        grep -vxE 'apt-get|update|install|rm' | grep -v '^-' |
        xargs dpkg-query -W -f '${Package}\n' >listed 2>unknown || true
    # What they need is there with them. (openssh-server need not be here.)
    xargs apt-cache depends --recurse --important --installed <listed |
        grep -oE '^[a-z0-9][a-z0-9.+-]+' | sort -u >there
    ldd "$build"/bin/{mnist,char_gpt,hvd-*,ipu-*,train-bench,memory_tools,pipelined} \
        "$build"/lib/*.so 2>/dev/null | awk '$3 ~ /^\// { print $3 }' | sort -u |
        grep -v "^$(readlink -f "$build")" >files
    grep -q libmpi files
    # dpkg knows some by their place behind links, and some with /usr in front.
    xargs readlink -f <files >>files
    sed 's,^,/usr,' files | cat - files | xargs dpkg-query -S 2>/dev/null |
        sed 's/:.*//' | sort -u >needed || true
    grep -q . needed
    run comm -23 needed there
    echo "the image lacks: $output"
    [ -z "$output" ]
}

@test "the Dockerfile makes an image on which the MPIJob runs" {
    [ -n "${HVD_TEST_FULL-}" ] || return 0
    "$ROOT/tests/tools/install-packages" mmdebstrap openssh-client
    run "$BATS_TEST_DIRNAME/image" "$DOCKERFILE" "$MPIJOB"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"mnist: 4 ranks"* ]]
}
