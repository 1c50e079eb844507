#!/bin/awk -f
# Debian's busybox has no printenv. This one sees names that are no shell variables
# too, which a shell script does not.
BEGIN {
	if (ARGC == 1)
		for (name in ENVIRON)
			print name "=" ENVIRON[name]
	for (i = 1; i < ARGC; i++)
		if (ARGV[i] in ENVIRON)
			print ENVIRON[ARGV[i]]
		else
			missing = 1
	exit missing
}
