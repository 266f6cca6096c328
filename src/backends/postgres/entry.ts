import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";

export const postgres: BackendEntry = {
  name: "postgres",
  title: "PostgreSQL",
  schemes: ["postgres", "postgresql"],
  example: "postgres://host:5432,host:5432/database",
  secrets: ["PGPASSWORD"],
  commands: [
    {
      name: "schema",
      help: "print the SQL that creates the table, for those whose role may not",
      flags: [
        { name: "schema", argument: "name", help: "the schema of the table; default: by search_path" },
        {
          name: "table",
          argument: "name",
          help: "the name of the table; default conclave_record, shedlock, conclave_fence",
        },
        { name: "layout", argument: "layout", help: "record (default), shedlock or fence" },
      ],
      text: async (values) => (await import("./table.js")).schemaText(values),
    },
  ],
  open: async (url) => (await import("./open.js")).openWithPg(url),
  openText: async (url) => (await import("./open.js")).openWithPg(url),
  absolute: (url) => withAbsolutePaths(url, ["sslcert", "sslkey", "sslrootcert"], resolve),
  guarantees: async () => (await import("./index.js")).GUARANTEES,
};
