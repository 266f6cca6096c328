# A command for tests that tries to get away: it and its descendants append heart beats to a file, as beating.ts does,
# and are deaf to SIGTERM. Arguments: file, host. Generations:
#   main       the command itself
#   cleared    a daemon in a session of its own, with an empty environment
#   hopping    starts a successor in a session of its own every 5 ms, and ends; empty environment
#   running    starts a successor every millisecond, and ends; in the session of the first
#   undumpable a daemon whose /proc entries its own user may not read, as ssh-agent is
#   opaque     the same, with a successor every 50 ms
use strict;
use warnings;
use POSIX qw(setsid _exit);
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

my ($file, $host, $generation, $token) = @ARGV;
$token //= $ENV{CONCLAVE_TOKEN} // die 'no token';
$SIG{TERM} = 'IGNORE';
open(my $log, '>>', $file) or die "$file: $!";

# Whatever a failed test has left behind ends when its directory is removed.
sub beat {
  -e $file or _exit(0);
  syswrite($log, sprintf("%s %s %s %.0f\n", $host, $token, $_[0], 1e9 * clock_gettime(CLOCK_MONOTONIC)));
}

sub beat_for_ever {
  my ($name) = @_;
  while (1) { beat($name); usleep(4_000); }
}

# In a session of its own, an orphan.
sub daemon {
  my ($work) = @_;
  my $pid = fork // die "fork: $!";
  if ($pid == 0) {
    setsid();
    _exit(0) if (fork // die "fork: $!");
    $work->();
    _exit(0);
  }
  waitpid($pid, 0);
}

sub hop {
  my ($name, $pause, $apart) = @_;
  while (1) {
    beat($name);
    usleep($pause);
    _exit(0) if (fork // _exit(1));
    setsid() if $apart;
  }
}

sub hide {
  my %number = (x86_64 => 157, aarch64 => 167);
  my $prctl = $number{(POSIX::uname())[4]} or die "no number for prctl here";
  syscall($prctl, 4, 0) == 0 or die "prctl: $!";
}

if (defined $generation) {
  beat_for_ever('cleared') if $generation eq 'cleared';
  hop('hopping', 5_000, 1);
}

$SIG{CHLD} = 'IGNORE';
for my $name ('cleared', 'hopping') {
  daemon(sub { exec('/usr/bin/env', '-i', $^X, $0, $file, $host, $name, $token) });
}
daemon(sub { hop('running', 1_000, 0) });
daemon(sub { hide(); beat_for_ever('undumpable') });
daemon(sub { hide(); hop('opaque', 50_000, 1) });
beat_for_ever('main');
