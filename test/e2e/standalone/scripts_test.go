package standalone

const (
	podName  = "envfiles-standalone"
	consumer = "use-envfile"
	// dir is on the node; a restart of the machine empties it.
	dir = "/run/podenv-standalone"
)

// launch starts run.sh as a unit of its own. Whatever ends it, its own end, its time
// limit or a person, restore.sh brings the node's kubelet back.
const launch = `systemctl reset-failed podenv-standalone.service 2> /dev/null || true
systemd-run --quiet --no-block --unit=podenv-standalone --property=RuntimeMaxSec=180 \
	--property=ExecStopPost="/bin/sh ` + dir + `/restore.sh" /bin/sh ` + dir + `/run.sh`

// runScript runs the kubelet without an API server, lets the sidecar know when the consumer
// has seen the first value, and waits until a restarted one has seen the second. It gives
// up after two minutes.
const runScript = `
kubelet=$(command -v kubelet)
logs() { cat /var/log/pods/*_` + podName + `-*/` + consumer + `/*.log 2> /dev/null; }

systemctl stop kubelet
rm -rf /var/log/pods/*_` + podName + `-*
# Another root directory: the volumes of the node's pods are none of its business.
"$kubelet" --config=` + dir + `/kubelet.json --root-dir=/var/lib/podenv-standalone > ` + dir + `/kubelet.log 2>&1 &
i=0
while [ $i -lt 120 ] && ! logs | grep -q 'A=second'; do
	i=$((i+1)); sleep 1
	if logs | grep -q 'A=first'; then
		# The kubelet keeps the logs of the last runs only.
		[ -e ` + dir + `/first ] || logs > ` + dir + `/first
		for volume in /var/lib/podenv-standalone/pods/*/volumes/kubernetes.io~empty-dir/config; do touch "$volume/seen"; done
	fi
done
cat ` + dir + `/first > ` + dir + `/result
logs >> ` + dir + `/result

rm ` + dir + `/manifests/pod.json
i=0
while [ $i -lt 20 ] && [ -n "$(ls /var/lib/podenv-standalone/pods)" ]; do i=$((i+1)); sleep 1; done
kill $!
wait
`

const restoreScript = `
systemctl start kubelet
rm -rf /var/lib/podenv-standalone
`
