#!/usr/bin/env bash
# The demo on Minikube, from nothing to three candidates: checks the tools, builds the image inside Minikube,
# deploys etcd and the candidates, waits, and says what to watch. May be run again: it updates what is there.
#   MINIKUBE_PROFILE   the Minikube cluster to use (default: minikube)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
profile=${MINIKUBE_PROFILE:-minikube}
# Always by name: whatever cluster kubectl points at otherwise is left alone.
kubectl=(kubectl --context "$profile")

step() { printf '\n==> %s\n' "$*"; }
fail() { printf 'setup.sh: %s\n' "$*" >&2; exit 1; }

step "Checking the tools"
missing=()
for tool in minikube kubectl docker; do
  command -v "$tool" >/dev/null 2>&1 || missing+=("$tool")
done
if [ "${#missing[@]}" -gt 0 ]; then
  fail "not installed: ${missing[*]}. See https://minikube.sigs.k8s.io/docs/start/ and https://docs.docker.com/get-docker/"
fi

if minikube --profile "$profile" status >/dev/null 2>&1; then
  echo "Minikube \"$profile\" is running"
else
  step "Starting Minikube \"$profile\""
  minikube --profile "$profile" start
fi

step "Building leader-election:latest inside Minikube"
environment=$(minikube --profile "$profile" docker-env --shell bash) || fail "minikube docker-env failed: does this Minikube use the docker runtime?"
# Only for the build: from here on docker means the one inside Minikube.
(
  eval "$environment"
  docker build --tag leader-election:latest --file "$root/deploy/Dockerfile" "$root"
)

step "Deploying etcd"
"${kubectl[@]}" apply -f "$here/etcd.yaml"
"${kubectl[@]}" rollout status statefulset/etcd --timeout=240s

step "Deploying three candidates"
existed=no
"${kubectl[@]}" get deployment/leader-election-app >/dev/null 2>&1 && existed=yes
"${kubectl[@]}" apply -f "$here/app.yaml"
# The tag did not change, so a running Deployment would keep the old image.
[ "$existed" = no ] || "${kubectl[@]}" rollout restart deployment/leader-election-app
"${kubectl[@]}" rollout status deployment/leader-election-app --timeout=240s

cat <<DONE

Three candidates are standing. Watch them:
  kubectl --context $profile logs -f -l app=leader-election --prefix --max-log-requests 10

Who leads, by etcd:
  kubectl --context $profile exec etcd-0 -- etcdctl get leader-election/ --prefix

Failover: delete the pod that leads, and another one leads at once:
  kubectl --context $profile delete pod <its name>

Scale:
  kubectl --context $profile scale deployment/leader-election-app --replicas=5

Clean up:
  $here/cleanup.sh
DONE
