// Runs aimock's command, whose file is the first argument. It ends when its input does, and so with the process that
// started it, however that ends.
import { pathToFileURL } from "node:url";

const [command] = process.argv.splice(2, 1);
process.stdin.on("end", () => process.exit()).resume();
await import(pathToFileURL(command));
