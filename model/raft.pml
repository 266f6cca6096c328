/*
 * Leader election among three voters: votes, promises (quorum leases), writes to
 * disk, restarts and lost disks, as ADR 042 has them; rule numbers are those of the
 * ADR. One election, two candidates. docs/model.md says in words what is modelled
 * and what is not; `make model` checks it with spin.
 *
 * All steps are atomic choices of one process, so that spin explores every order
 * of them. Nothing forces a step to happen: a message that is never received is a
 * lost one; a node that makes no step is stopped, slow or dead.
 *
 * Network: messages are facts that stay. Each can be received at any later time,
 * in any order, any number of times, by one voter and not by the other.
 *
 * Time: a tick passes for all at once. A lease is LEASE ticks. Between two ticks any
 * number of steps can happen.
 *
 * Terms: numbered from the lowest one that some voter can still be in. When all have
 * left it, all terms are renumbered. So the number of terms and of restarts is not
 * bounded; only how far apart voters can be, and how many disks are lost.
 */

#ifndef TERMS
#define TERMS 1     /* a voter can be this many terms ahead of another one */
#endif
#ifndef LEASE
#define LEASE 2     /* ticks */
#endif
#ifndef WIPES
#define WIPES 0     /* how often the first voter loses its disk; voters are alike, so it can be any */
#endif

#define NOBODY 0    /* candidates are stored as 1 and 2 */

#define BIT(n)        (1 << (n))
#define BID(t, c)     ((t) * 2 + (c))         /* a candidate's attempt in a term */
#define ACK(t, c, v)  (BID(t, c) * 3 + (v))
#define MAX(a, b)     ((a) > (b) -> (a) : (b))
#define MIN(a, b)     ((a) < (b) -> (a) : (b))
#define COUNT(mask)   (((mask) & 1) + (((mask) >> 1) & 1) + (((mask) >> 2) & 1))

/* ---- broken variants: each takes one rule away ---- */
#ifdef NO_PROMISE_FOR_VOTES
#define MAY_VOTE(v, c)   true
#else
#define MAY_VOTE(v, c)   (promise[v] == 0 || promisedTo[v] == (c) + 1)
#endif
#ifdef NO_PROMISE_FOR_BEATS
#define MAY_ACK(v, c)    true
#else
#define MAY_ACK(v, c)    (promise[v] == 0 || promisedTo[v] == (c) + 1)
#endif
#ifdef NO_RESTART_RULE
#define RESTART_WAIT     0
#else
#define RESTART_WAIT     LEASE
#endif
#ifdef REJOIN_BY_MAJORITY
#define HEARD_ENOUGH(v)  (heard[v] != 0)
#else
#define HEARD_ENOUGH(v)  (heard[v] == 7 - BIT(v))
#endif
#ifdef ANY_LEADER_OF_THE_TERM
#define OPENED(t, c)     true
#else
#define OPENED(t, c)     (openedBy[t] == (c) + 1)
#endif
#ifdef ANSWER_BEFORE_PERSIST
#define SLOW_DISK
#endif
#ifndef MAJORITY
#define MAJORITY 2
#endif

/* ---- a voter ---- */
byte term[3];          /* in memory; of a voter that lost its disk: the highest that it was told */
byte vote[3];          /* whom it voted for in its term */
byte leader[3];        /* whom it acknowledged in its term */
byte diskTerm[3];
byte diskVote[3];
byte diskLeader[3];
byte promise[3];       /* ticks that its promise still lasts; in memory */
byte promisedTo[3];    /* to this candidate */
byte promisedIn[3];    /* in this term */
byte pendingAck[3];    /* an acknowledgement that waits for the disk: what it is worth, in ticks */
byte restartWait[3];   /* rule 4: ticks that it is silent */
bool lost[3];          /* lost its disk and has not rejoined */
byte heard[3];         /* voters that told it their term since */

/* ---- a candidate ---- */
byte bid[2];           /* 1 + the term of its attempt; 0 = it makes none */
bool won[2];           /* a majority has voted for it */
byte lease[2];         /* ticks for which `held` is true; 0 = the term is not open */

/* ---- the network, and what was ---- */
byte asked[TERMS + 1];             /* VOTE(term) was sent by these candidates */
byte elected[TERMS + 1];           /* these won, and may have sent BEAT(term) */
byte openedBy[TERMS + 1];          /* this one opened the term: its later BEATs say so */
byte released[TERMS + 1];          /* RELEASE(term) was sent by these */
byte votes[(TERMS + 1) * 2];       /* [term, candidate]: yes of these voters */
byte acks[(TERMS + 1) * 6];        /* [term, candidate, voter]: the newest BEAT acknowledged is worth so many more ticks */
byte lastToken;                    /* 1 + the term that opened last */
byte wipes = WIPES;

byte i;                            /* loop counters and such: 0 between steps */
byte j;
byte floor;
bool oneVotePerVoterAndTerm = true;
bool oneElectedPerTerm = true;
bool oneLeaderPerTerm = true;
bool oneHolder = true;
bool tokensRise = true;
bool notReached = true;

#define NAMED(v)       (leader[v] != NOBODY -> leader[v] : vote[v])
#define DISK_NAMED(v)  (diskLeader[v] != NOBODY -> diskLeader[v] : diskVote[v])
#define ON_DISK(v)     (diskTerm[v] == term[v] && diskVote[v] == vote[v] && diskLeader[v] == leader[v])
#define TRIES(t, c)    (bid[c] == (t) + 1)
/* What a majority has acknowledged. */
#define ACKED(t, c)    MAX(MIN(acks[ACK(t, c, 0)], acks[ACK(t, c, 1)]), MIN(acks[ACK(t, c, 2)], MAX(acks[ACK(t, c, 0)], acks[ACK(t, c, 1)])))

/* Nobody counts the answers to a bid that is over. */
inline giveUp(C) {
  if
  :: bid[C] > 0 ->
    votes[BID(bid[C] - 1, C)] = 0;
    acks[ACK(bid[C] - 1, C, 0)] = 0;
    acks[ACK(bid[C] - 1, C, 1)] = 0;
    acks[ACK(bid[C] - 1, C, 2)] = 0;
    bid[C] = 0;
    won[C] = false;
    lease[C] = 0
  :: else
  fi
}

/*
 * Terms below the floor are those that every voter has left for good: no vote or
 * acknowledgement can be given in them. What was said in them is forgotten, and
 * while nobody can lead in the lowest term all terms are renumbered.
 */
inline tidy() {
  floor = TERMS;
  for (i : 0 .. 2) {
    if
    :: lost[i] && heard[i] == 0 /* it will be told a term that is not below those of the others */
    :: lost[i] && heard[i] != 0 -> floor = MIN(floor, term[i])
    :: !lost[i] -> floor = MIN(floor, diskTerm[i])
    fi;
    if
    :: promise[i] > 0 -> floor = MIN(floor, promisedIn[i])
    :: else -> promisedTo[i] = NOBODY; promisedIn[i] = 0
    fi
  }
  for (i : 0 .. 1) {
    if
    :: bid[i] > 0 && bid[i] <= floor && lease[i] == 0 && ACKED(bid[i] - 1, i) == 0 -> giveUp(i)
    :: else
    fi
  }
  if
  :: floor > 0 ->
    for (i : 0 .. floor - 1) {
      asked[i] = 0;
      elected[i] = 0;
      openedBy[i] = NOBODY;
      released[i] = 0
    }
  :: else
  fi;
  do
  :: floor > 0 && bid[0] != 1 && bid[1] != 1 ->
    printf("  (every voter has left term 0: terms are renumbered)\n");
    floor--;
    for (i : 0 .. 2) {
      term[i] = (term[i] > 0 -> term[i] - 1 : 0);
      diskTerm[i] = (diskTerm[i] > 0 -> diskTerm[i] - 1 : 0);
      promisedIn[i] = (promisedIn[i] > 0 -> promisedIn[i] - 1 : 0)
    }
    bid[0] = (bid[0] > 0 -> bid[0] - 1 : 0);
    bid[1] = (bid[1] > 0 -> bid[1] - 1 : 0);
    lastToken = (lastToken > 0 -> lastToken - 1 : 0);
    for (i : 0 .. TERMS - 1) {
      asked[i] = asked[i + 1];
      elected[i] = elected[i + 1];
      openedBy[i] = openedBy[i + 1];
      released[i] = released[i + 1];
      votes[BID(i, 0)] = votes[BID(i + 1, 0)];
      votes[BID(i, 1)] = votes[BID(i + 1, 1)];
      for (j : 0 .. 5) { acks[i * 6 + j] = acks[i * 6 + 6 + j] }
    }
    asked[TERMS] = 0;
    elected[TERMS] = 0;
    openedBy[TERMS] = NOBODY;
    released[TERMS] = 0;
    votes[BID(TERMS, 0)] = 0;
    votes[BID(TERMS, 1)] = 0;
    for (j : 0 .. 5) { acks[TERMS * 6 + j] = 0 }
  :: else -> break
  od;
  floor = 0;
  i = 0;
  j = 0
}

/* V says yes to candidate C in term T. */
inline answerVote(V, T, C) {
  if
  :: TRIES(T, C) -> votes[BID(T, C)] = votes[BID(T, C)] | BIT(V)
  :: else
  fi;
  oneVotePerVoterAndTerm = !(votes[BID(T, 0)] & votes[BID(T, 1)] & BIT(V));
#if WIPES == 0
#ifndef IGNORE_VOTES
  assert(oneVotePerVoterAndTerm);
#endif
#endif
  oneVotePerVoterAndTerm = true
}

/* What V acknowledged reaches the leader; a term that is open lasts longer by it. */
inline answerBeat(V, T, C, worth) {
  if
  :: TRIES(T, C) ->
    acks[ACK(T, C, V)] = MAX(acks[ACK(T, C, V)], worth);
    if
    :: lease[C] > 0 && lease[C] < ACKED(T, C) -> lease[C] = ACKED(T, C)
    :: else
    fi
  :: else
  fi
}

/* The write reaches the disk; only now what depends on it is sent. */
inline written(V) {
  diskTerm[V] = term[V];
  diskVote[V] = vote[V];
  diskLeader[V] = leader[V];
  if
  :: vote[V] != NOBODY -> j = vote[V] - 1; answerVote(V, term[V], j); j = 0
  :: else
  fi;
  if
  :: pendingAck[V] > 0 ->
    j = NAMED(V) - 1;
    answerBeat(V, term[V], j, pendingAck[V]);
    j = 0;
    pendingAck[V] = 0
  :: else
  fi
}

#ifdef SLOW_DISK
#define WRITE(V) skip
#else
#define WRITE(V) written(V)
#endif

/* The voter works on while its write is under way, and answers afterwards. */
inline persist(V) {
  d_step {
    !lost[V] && !ON_DISK(V) ->
    printf("v%d: the write reaches the disk\n", V + 1);
    written(V);
    tidy()
  }
}

/* A candidate chooses any term, but makes one bid in it. */
inline stand(C, T) {
  d_step {
    bid[C] == 0 && !(asked[T] & BIT(C)) ->
    printf("c%d stands in term %d\n", C + 1, T);
    bid[C] = T + 1;
    asked[T] = asked[T] | BIT(C);
    tidy()
  }
}

/* Rule 2: VOTE(T) of candidate C arrives at V. */
inline receiveVote(V, T, C) {
  d_step {
    (asked[T] & BIT(C)) && T > term[V] && !lost[V] && restartWait[V] == 0 && MAY_VOTE(V, C) ->
    printf("v%d receives VOTE(%d) of c%d and votes for it\n", V + 1, T, C + 1);
    term[V] = T;
    vote[V] = C + 1;
    leader[V] = NOBODY;
    pendingAck[V] = 0;
#ifdef ANSWER_BEFORE_PERSIST
    answerVote(V, T, C);
#endif
    WRITE(V);
    tidy()
  }
}

/* `held` is true for so many ticks from now on. */
inline hold(C, duration) {
  oneHolder = (lease[1 - C] == 0);
  assert(oneHolder);
  oneLeaderPerTerm = (openedBy[bid[C] - 1] == NOBODY);
  assert(oneLeaderPerTerm);
  tokensRise = (bid[C] > lastToken);
  assert(tokensRise);
  lastToken = bid[C];
  openedBy[bid[C] - 1] = C + 1;
  lease[C] = duration
}

/* Rule 6, first half: a majority of votes. */
inline win(C) {
  d_step {
    bid[C] > 0 && !won[C] && COUNT(votes[BID(bid[C] - 1, C)]) >= MAJORITY ->
    printf("c%d has a majority of votes in term %d\n", C + 1, bid[C] - 1);
    won[C] = true;
    votes[BID(bid[C] - 1, C)] = 0;
    elected[bid[C] - 1] = elected[bid[C] - 1] | BIT(C);
    oneElectedPerTerm = (elected[bid[C] - 1] == BIT(C));
#if WIPES == 0
    assert(oneElectedPerTerm);
#endif
    oneElectedPerTerm = true;
#ifdef OPEN_WHEN_ELECTED
    hold(C, LEASE);
#endif
    skip
  }
}

/*
 * Rules 1, 3 and 4: BEAT(T) of C arrives at V. A beat that was sent earlier would be
 * worth less to the leader and bind V for as long, so it is enough to let all beats
 * arrive in the tick in which they are sent. Beats of a leader that is gone arrive too.
 */
inline receiveBeat(V, T, C) {
  d_step {
    (elected[T] & BIT(C)) && !lost[V] && T >= term[V] && MAY_ACK(V, C) &&
      (T > term[V] || NAMED(V) == C + 1 || (OPENED(T, C) && leader[V] == NOBODY)) &&
      (restartWait[V] == 0 || (diskTerm[V] == T && DISK_NAMED(V) == C + 1)) ->
    printf("v%d receives BEAT(%d) of c%d and acknowledges it\n", V + 1, T, C + 1);
    if
    :: T > term[V] -> vote[V] = NOBODY; leader[V] = C + 1
    :: T == term[V] && NAMED(V) != C + 1 -> leader[V] = C + 1
    :: else
    fi;
    term[V] = T;
    promise[V] = LEASE;
    promisedTo[V] = C + 1;
    promisedIn[V] = T;
    if
    :: ON_DISK(V) -> answerBeat(V, T, C, LEASE)
    :: else -> pendingAck[V] = LEASE; WRITE(V)
    fi;
    tidy()
  }
}

/* Rules 6 and 7: a majority acknowledged beats that are worth so many more ticks. */
inline open(C) {
  d_step {
    won[C] && lease[C] == 0 && ACKED(bid[C] - 1, C) > 0 ->
    printf("c%d opens term %d\n", C + 1, bid[C] - 1);
#ifdef LEASE_FROM_ANSWER
    j = LEASE;
#else
    j = ACKED(bid[C] - 1, C);
#endif
    hold(C, j);
    j = 0
  }
}

/* A leader resigns, a candidate withdraws. One that dies is one whose RELEASE is never received. */
inline release(C) {
  d_step {
    bid[C] > 0 ->
    printf("c%d gives up term %d\n", C + 1, bid[C] - 1);
    released[bid[C] - 1] = released[bid[C] - 1] | BIT(C);
    giveUp(C);
    tidy()
  }
}

/* Rule 1: RELEASE(T) ends the promise to that bid; and the silence after a restart, if the disk names that bid. */
inline receiveRelease(V, T, C) {
  d_step {
    (released[T] & BIT(C)) && !lost[V] &&
      ((promise[V] > 0 && promisedTo[V] == C + 1 && promisedIn[V] == T) ||
       (restartWait[V] > 0 && term[V] == T && NAMED(V) == C + 1)) ->
    printf("v%d receives RELEASE(%d) of c%d\n", V + 1, T, C + 1);
    if
    :: promisedTo[V] == C + 1 && promisedIn[V] == T -> promise[V] = 0
    :: else
    fi;
    if
    :: term[V] == T && NAMED(V) == C + 1 -> restartWait[V] = 0
    :: else
    fi;
    tidy()
  }
}

inline restart(V) {
  d_step {
    printf("v%d restarts\n", V + 1);
    term[V] = diskTerm[V];
    vote[V] = diskVote[V];
    leader[V] = diskLeader[V];
    promise[V] = 0;
    pendingAck[V] = 0;
    restartWait[V] = RESTART_WAIT;
    heard[V] = 0;
    tidy()
  }
}

inline wipe(V) {
  d_step {
    wipes > 0 && !lost[V] ->
    printf("v%d restarts, and its disk is empty\n", V + 1);
    wipes--;
    lost[V] = true;
    term[V] = 0;
    vote[V] = NOBODY;
    leader[V] = NOBODY;
    diskTerm[V] = 0;
    diskVote[V] = NOBODY;
    diskLeader[V] = NOBODY;
    promise[V] = 0;
    pendingAck[V] = 0;
    restartWait[V] = RESTART_WAIT;
    tidy()
  }
}

/* P tells a voter that lost its disk the term on its own. */
inline learn(V, P) {
  d_step {
    lost[V] && !lost[P] && !(heard[V] & BIT(P)) ->
    printf("v%d tells v%d its term, %d\n", P + 1, V + 1, diskTerm[P]);
    heard[V] = heard[V] | BIT(P);
    term[V] = MAX(term[V], diskTerm[P]);
    tidy()
  }
}

inline rejoin(V) {
  d_step {
    lost[V] && HEARD_ENOUGH(V) ->
    printf("v%d rejoins in term %d\n", V + 1, term[V]);
    lost[V] = false;
    heard[V] = 0;
#ifdef REJOIN_VOTES_AGAIN
    term[V] = (term[V] > 0 -> term[V] - 1 : 0);
#endif
    diskTerm[V] = term[V];
    tidy()
  }
}

#define RUN_DOWN(x) x = (x > 0 -> x - 1 : 0)

inline tick() {
  d_step {
    printf("a tick\n");
    for (i : 0 .. (TERMS + 1) * 6 - 1) { RUN_DOWN(acks[i]) }
    for (i : 0 .. 2) {
      RUN_DOWN(promise[i]);
      RUN_DOWN(pendingAck[i]);
      RUN_DOWN(restartWait[i])
    }
    for (i : 0 .. 1) {
      if
      :: lease[i] == 1 -> giveUp(i) /* the term has ended and does not open again */
      :: else -> RUN_DOWN(lease[i])
      fi
    }
    tidy()
  }
}

/* That the model gets somewhere at all: these claims must fail. */
#ifdef REACH_SECOND_TERM
#define REACH lastToken == 2 && lease[1] > 0
#endif
#ifdef REACH_REJOINED
#define REACH wipes == 0 && !lost[0] && promise[0] > 0 && lease[0] > 0 && term[0] > 0
#endif
#ifdef REACH
#define CHECK_REACH :: d_step { (REACH) -> notReached = false; assert(notReached) }
#else
#define CHECK_REACH
#endif
#ifdef SLOW_DISK
#define PERSIST(v) :: persist(v)
#else
#define PERSIST(v)
#endif
#if WIPES == 0
#define WIPE(v, p, q)
#else
#define WIPE(v, p, q) :: wipe(v) :: learn(v, p) :: learn(v, q) :: rejoin(v)
#endif

#define MESSAGES(v, t, c) :: receiveVote(v, t, c) :: receiveBeat(v, t, c) :: receiveRelease(v, t, c)
#define IN_TERM(v, t)     MESSAGES(v, t, 0) MESSAGES(v, t, 1)
#if TERMS == 1
#define IN_EACH_TERM(v)   IN_TERM(v, 0) IN_TERM(v, 1)
#define STAND(c)          :: stand(c, 0) :: stand(c, 1)
#elif TERMS == 2
#define IN_EACH_TERM(v)   IN_TERM(v, 0) IN_TERM(v, 1) IN_TERM(v, 2)
#define STAND(c)          :: stand(c, 0) :: stand(c, 1) :: stand(c, 2)
#else
#define IN_EACH_TERM(v)   IN_TERM(v, 0) IN_TERM(v, 1) IN_TERM(v, 2) IN_TERM(v, 3)
#define STAND(c)          :: stand(c, 0) :: stand(c, 1) :: stand(c, 2) :: stand(c, 3)
#endif
#define VOTER(v)          IN_EACH_TERM(v) :: restart(v) PERSIST(v)
#define CANDIDATE(c)      STAND(c) :: win(c) :: open(c) :: release(c)

active proctype system() {
  do
  CHECK_REACH
  VOTER(0) WIPE(0, 1, 2)
  VOTER(1)
  VOTER(2)
  CANDIDATE(0)
  CANDIDATE(1)
  :: tick()
  od
}
