// What the bench does with Conclave, done with etcd's own Go library: one
// program, its first argument says which part. The import path of the library
// differs between its versions: the bench puts it in before it compiles this.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	clientv3 "CLIENT"
	"CLIENT/concurrency"
)

const monotonic = 1

// Milliseconds by the machine's monotonic clock, the same in every process.
func machineMs() float64 {
	var at syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0)
	return float64(at.Sec)*1e3 + float64(at.Nsec)/1e6
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(at int) int {
	value, err := strconv.Atoi(os.Args[at])
	must(err)
	return value
}

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[2]}, DialTimeout: 5 * time.Second})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	must(err)
	switch os.Args[1] {
	case "elect":
		elect(session, os.Args[3])
	case "cycles":
		cycles(session, number(3), number(4))
	case "many":
		many(session, number(3))
	}
}

// Leads until SIGINT, stands again at SIGUSR2, ends at SIGTERM.
func elect(session *concurrency.Session, name string) {
	interrupt, again, end := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(interrupt, syscall.SIGINT)
	signal.Notify(again, syscall.SIGUSR2)
	signal.Notify(end, syscall.SIGTERM)
	go func() {
		<-end
		session.Close()
		os.Exit(0)
	}()
	ctx := context.Background()
	election := concurrency.NewElection(session, name)
	for {
		must(election.Campaign(ctx, "go"))
		fmt.Printf("leads %f\n", machineMs())
		<-interrupt
		called := machineMs()
		must(election.Resign(ctx))
		fmt.Printf("resigned %f\n", called)
		<-again
	}
}

// Takes and gives back locks of different names for so many seconds.
func cycles(session *concurrency.Session, width int, seconds int) {
	ctx := context.Background()
	var done int64
	var all sync.WaitGroup
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for lane := 0; lane < width; lane++ {
		all.Add(1)
		go func(lane int) {
			defer all.Done()
			for time.Now().Before(until) {
				mutex := concurrency.NewMutex(session, fmt.Sprintf("lane-%d", lane))
				must(mutex.Lock(ctx))
				must(mutex.Unlock(ctx))
				atomic.AddInt64(&done, 1)
			}
		}(lane)
	}
	all.Wait()
	fmt.Printf("{\"event\":\"cycles\",\"perSecond\":%f}\n", float64(done)/float64(seconds))
	session.Close()
}

// Campaigns in so many elections and holds what it wins.
func many(session *concurrency.Session, count int) {
	ctx := context.Background()
	started := time.Now()
	var led int64
	for i := 0; i < count; i++ {
		go func(i int) {
			must(concurrency.NewElection(session, fmt.Sprintf("many/%d", i)).Campaign(ctx, "go"))
			switch atomic.AddInt64(&led, 1) {
			case 1:
				fmt.Printf("{\"event\":\"first\",\"at\":%f}\n", machineMs())
			}
			if atomic.LoadInt64(&led) == int64(count) {
				fmt.Printf("{\"event\":\"all\",\"at\":%f,\"wonMs\":%d}\n", machineMs(), time.Since(started).Milliseconds())
			}
		}(i)
	}
	select {}
}
