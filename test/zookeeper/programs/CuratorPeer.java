import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

/**
 * A candidate on Curator, for tests: CuratorPeer hosts path id latch|selector|mutex.
 * Reads stand, resign and who from standard input; writes leading, lost, resigning, out and "who id".
 */
public class CuratorPeer {
  static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  interface Recipe {
    void stand() throws Exception;

    void resign() throws Exception;

    String who() throws Exception;
  }

  static Recipe latch(CuratorFramework client, String path, String id) {
    return new Recipe() {
      LeaderLatch latch;

      public void stand() throws Exception {
        latch = new LeaderLatch(client, path, id);
        latch.addListener(
            new LeaderLatchListener() {
              public void isLeader() {
                say("leading");
              }

              public void notLeader() {
                say("lost");
              }
            });
        latch.start();
      }

      public void resign() throws Exception {
        latch.close();
      }

      public String who() throws Exception {
        return latch.getLeader().getId();
      }
    };
  }

  static Recipe selector(CuratorFramework client, String path, String id) {
    return new Recipe() {
      LeaderSelector selector;
      CountDownLatch resigned;

      public void stand() {
        CountDownLatch mine = resigned = new CountDownLatch(1);
        selector =
            new LeaderSelector(
                client,
                path,
                new LeaderSelectorListenerAdapter() {
                  public void takeLeadership(CuratorFramework c) throws Exception {
                    say("leading");
                    mine.await();
                  }
                });
        selector.setId(id);
        selector.start();
      }

      public void resign() throws Exception {
        resigned.countDown();
        Thread.sleep(20);
        selector.close();
      }

      public String who() throws Exception {
        return new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
          public void takeLeadership(CuratorFramework c) {}
        }).getLeader().getId();
      }
    };
  }

  static Recipe mutex(CuratorFramework client, String path, String id) {
    return new Recipe() {
      CountDownLatch resigned;
      Thread thread;

      public void stand() {
        CountDownLatch mine = resigned = new CountDownLatch(1);
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        thread =
            new Thread(
                () -> {
                  try {
                    mutex.acquire();
                    say("leading");
                    mine.await();
                    mutex.release();
                  } catch (Exception e) {
                    say("lost");
                  }
                });
        thread.start();
      }

      public void resign() throws Exception {
        resigned.countDown();
        thread.join();
      }

      public String who() throws Exception {
        Collection<String> nodes = new InterProcessMutex(client, path).getParticipantNodes();
        return new String(client.getData().forPath(nodes.iterator().next()));
      }
    };
  }

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.builder()
            .connectString(args[0])
            .sessionTimeoutMs(2000)
            .connectionTimeoutMs(2000)
            .retryPolicy(new RetryNTimes(10, 100))
            .build();
    client.start();
    client.blockUntilConnected();
    Recipe recipe =
        args[3].equals("latch")
            ? latch(client, args[1], args[2])
            : args[3].equals("selector") ? selector(client, args[1], args[2]) : mutex(client, args[1], args[2]);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    say("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      if (line.equals("stand")) recipe.stand();
      if (line.equals("who")) say("who " + recipe.who());
      if (line.equals("resign")) {
        say("resigning");
        recipe.resign();
        say("out");
      }
    }
    client.close();
    System.exit(0);
  }
}
