#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The Kubernetes templates: they are what Kubernetes and Kubeflow expect, their
# shell makes a TF_CONFIG that hvd accepts, and two processes that run it train
# together. There is no Kubernetes here: the pods' names are replaced by
# addresses of this host.

load ../support/models
load ../support/terminals

setup() {
    models_setup mnist
    terminals_setup
    FOLDER=$BATS_TEST_DIRNAME/../../docs/kubernetes
    # Debian's Python has the package; another one may come first in PATH.
    PYTHON=/usr/bin/python3
    "$PYTHON" -c 'import yaml' || skip "there is no python3-yaml"
}

# in_yaml FILE PYTHON: evaluates an expression over its documents, by kind.
in_yaml() {
    "$PYTHON" - "$FOLDER/$1" "$2" <<'EOF'
import sys, yaml
kinds = {d["kind"]: d for d in yaml.safe_load_all(open(sys.argv[1]))}
service, job = kinds.get("Service"), next(d for k, d in kinds.items() if k != "Service")
def pod(template):
    return template["template"]["spec"]
def container(template):
    (only,) = pod(template)["containers"]
    return only
result = eval(sys.argv[2])
if result is False:
    sys.exit(f"{sys.argv[2]}: false")
if result is not True:
    print(result)
EOF
}

# The shell of a template, with the last COMMAND in place of the training.
shell_of() { # FILE COMMAND
    in_yaml "$1" 'container(job["spec"])["args"][0]' |
        sed -e "s,/etc/hvd/key,$PWD/key," -e '/^sleep/d' \
            -e "s|^\(exec \)\{0,1\}mnist .*|exec $2|"
}

make_key() {
    head -c 32 /dev/urandom >key
}

@test "a Job and a StatefulSet have the service, the names and the number of their workers" {
    local file
    for file in job statefulset; do
        in_yaml $file.yaml 'service["spec"]["clusterIP"] == "None"'
        in_yaml $file.yaml 'service["spec"]["ports"][0]["port"] == container(job["spec"])["ports"][0]["containerPort"]'
        in_yaml $file.yaml 'pod(job["spec"])["volumes"][0]["name"] == container(job["spec"])["volumeMounts"][0]["name"]'
        in_yaml $file.yaml '{"name": "WORKERS", "value": "2"} in container(job["spec"])["env"]'
    done
    in_yaml job.yaml 'job["apiVersion"] == "batch/v1" and job["spec"]["completionMode"] == "Indexed"'
    in_yaml job.yaml 'job["spec"]["completions"] == job["spec"]["parallelism"] == 2'
    in_yaml job.yaml 'pod(job["spec"])["subdomain"] == service["metadata"]["name"]'
    in_yaml job.yaml 'service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}'
    in_yaml job.yaml 'pod(job["spec"])["restartPolicy"] == "Never"'
    in_yaml statefulset.yaml 'job["apiVersion"] == "apps/v1" and job["spec"]["replicas"] == 2'
    in_yaml statefulset.yaml 'job["spec"]["serviceName"] == service["metadata"]["name"]'
    in_yaml statefulset.yaml 'job["spec"]["template"]["metadata"]["labels"] == service["spec"]["selector"]'
    # What is false is noticed.
    run in_yaml job.yaml 'job["spec"]["completions"] == 3'
    [ "$status" -ne 0 ]
}

@test "their shell makes the TF_CONFIG of each pod" {
    local file index
    make_key
    for file in job statefulset; do
        for index in 0 1; do
            WORKERS=2 JOB_COMPLETION_INDEX=$index HOSTNAME=mnist-$index \
                run sh -euc "$(shell_of $file.yaml 'hvd-info --cluster')"
            echo "$output"
            [ "$status" -eq 0 ]
            [[ $output == *"worker 0     mnist-0.mnist:3737"* ]]
            [[ $output == *"worker 1     mnist-1.mnist:3737"* ]]
            [[ $output == *"worker $index     mnist-$index.mnist:3737  <- this process"* ]]
            [[ $output == *"yes, on 2 ranks"* ]]
        done
    done
}

@test "their shell, run twice on this host, trains" {
    local file index first
    make_key
    chmod 440 key
    for file in job statefulset; do
        first=$(ports_in_a_row 2)
        shell_of $file.yaml 'mnist --model mlp --train-images 960 --test-images 100 --steps 20' |
            sed "s,mnist-\$index.mnist:3737,localhost:\$(($first + index))," >shell
        grep -q "localhost" shell
        for index in 1 0; do
            terminal "$index" "WORKERS=2 JOB_COMPLETION_INDEX=$index HOSTNAME=mnist-$index sh -eu shell"
        done
        expect 0 0
        grep 'mnist: 2 ranks' 0.out
    done
}

@test "a TFJob has what the operator requires, whose TF_CONFIG trains" {
    in_yaml tfjob.yaml 'job["apiVersion"] == "kubeflow.org/v1" and job["kind"] == "TFJob"'
    in_yaml tfjob.yaml 'sorted(job["spec"]["tfReplicaSpecs"]) == ["Chief", "Evaluator", "Worker"]'
    in_yaml tfjob.yaml 'all(container(t)["name"] == "tensorflow" for t in job["spec"]["tfReplicaSpecs"].values())'
    in_yaml tfjob.yaml 'all(container(t)["ports"][0] == {"name": "tfjob-port", "containerPort": 2222} for t in job["spec"]["tfReplicaSpecs"].values())'
    in_yaml tfjob.yaml '[t["replicas"] for t in job["spec"]["tfReplicaSpecs"].values()] == [1, 2, 1]'
    in_yaml tfjob.yaml 'container(job["spec"]["tfReplicaSpecs"]["Chief"])["args"][0]' |
        sed -e "s,/etc/hvd/key,$PWD/key," -e "s,/model/run,$PWD/run," \
            -e "s,--epochs 5,--model mlp --train-images 960 --test-images 100 --steps 20," >shell
    make_key
    # The operator writes it in this form, in which the evaluator is not listed.
    local task
    for task in evaluator:0 worker:1 chief:0 worker:0; do
        terminal "${task/:/}" "TF_CONFIG='{\"cluster\":{\"chief\":[\"localhost:3737\"],\"worker\":[\"localhost:3738\",\"localhost:3739\"]},\"task\":{\"type\":\"${task%:*}\",\"index\":${task#*:}},\"environment\":\"cloud\"}' sh -eu shell"
    done
    expect 0 0 0 0
    grep 'mnist: 3 ranks' chief0.out
    grep '^step 20 ' evaluator0.out
    TF_CONFIG='{"cluster":{"chief":["mnist-chief-0.default.svc:2222"],"worker":["mnist-worker-0.default.svc:2222","mnist-worker-1.default.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"}' \
        run hvd-info --cluster
    [ "$status" -eq 0 ]
    [[ $output == *"evaluator 0"*"<- this process"* ]]
}
