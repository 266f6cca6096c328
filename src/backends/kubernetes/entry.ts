import { delimiter, resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";
import { TIMING } from "./timing.js";

export const kubernetes: BackendEntry = {
  name: "kubernetes",
  title: "Kubernetes",
  schemes: ["kubernetes"],
  example: "kubernetes:///namespace",
  timing: TIMING,
  // The names that operators know from other tools.
  flags: {
    where: [
      { name: "kubeconfig", argument: "path", help: "Kubernetes: the configuration to use" },
      {
        name: "lease-lock-namespace",
        argument: "namespace",
        help: "Kubernetes: the namespace of the Lease",
      },
    ],
    election: {
      name: "lease-lock-name",
      argument: "name",
      help: "Kubernetes: name of the Lease; the same as NAME",
    },
    url: ({ kubeconfig, "lease-lock-namespace": namespace = "" }) => {
      const url = new URL(`kubernetes:///${encodeURIComponent(namespace)}`);
      if (kubeconfig !== undefined) url.searchParams.set("kubeconfig", resolve(kubeconfig));
      return url.href;
    },
  },
  open: async (url) => (await import("./index.js")).openKubernetes(url),
  absolute: (url) =>
    withAbsolutePaths(url, ["kubeconfig"], (list) =>
      // As KUBECONFIG, it may list several.
      list
        .split(delimiter)
        .map((file) => (file === "" ? file : resolve(file)))
        .join(delimiter),
    ),
  guarantees: async () => (await import("./index.js")).GUARANTEES,
};
