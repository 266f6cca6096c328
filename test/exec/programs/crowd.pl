# Many processes that do nothing. Argument: how many. Says "ready" when all are there; they end with this one.
use strict;
use warnings;
use POSIX qw(uname _exit);

my %number = (x86_64 => 157, aarch64 => 167);
my $prctl = $number{(uname())[4]} or die "no number for prctl here";
for (1 .. $ARGV[0]) {
  my $pid = fork // die "fork: $!";
  next if $pid;
  # SIGKILL when the parent dies.
  syscall($prctl, 1, 9);
  sleep while 1;
}
syswrite(STDOUT, "ready\n");
sleep while 1;
