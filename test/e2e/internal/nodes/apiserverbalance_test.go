package nodes

import "testing"

func TestRules(t *testing.T) {
	const filter = `COMMIT
*filter
:PODENV-APISERVERS - [0:0]
-A PODENV-APISERVERS -s 10.0.0.1 -p tcp -m conntrack --ctdir ORIGINAL --ctorigdstport 6443 -m conntrack --ctstate NEW -j CONNMARK --set-mark 7
-A PODENV-APISERVERS -s 10.0.0.1 -p tcp -m conntrack --ctdir ORIGINAL --ctorigdstport 6443 -m connmark ! --mark 7 -j REJECT --reject-with tcp-reset
-A PODENV-APISERVERS -s 10.0.0.2 -p tcp -m conntrack --ctdir ORIGINAL --ctorigdstport 6443 -m conntrack --ctstate NEW -j CONNMARK --set-mark 7
-A PODENV-APISERVERS -s 10.0.0.2 -p tcp -m conntrack --ctdir ORIGINAL --ctorigdstport 6443 -m connmark ! --mark 7 -j REJECT --reject-with tcp-reset
COMMIT
`
	// Whatever the route is, there is a port that leads past it to the first server.
	const nat = `*nat
:PODENV-APISERVERS - [0:0]
-A PODENV-APISERVERS -d 10.0.0.1 -p tcp --dport 6445 -j DNAT --to-destination 10.0.0.1:6443
`
	for route, leads := range map[Route]string{
		ToFirst:  "",
		ToSecond: "-A PODENV-APISERVERS -d 10.0.0.1 -p tcp --dport 6443 -j DNAT --to-destination 10.0.0.1:6444\n",
		ToBoth:   "-A PODENV-APISERVERS -d 10.0.0.1 -p tcp --dport 6443 -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.0.0.1:6444\n",
	} {
		t.Run(string(route), func(t *testing.T) {
			want := nat + leads + filter
			if got := rules("10.0.0.1", []string{"10.0.0.1", "10.0.0.2"}, route, 7); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
