import { Module } from '@nestjs/common';
import { AccessModule } from '../access/access.module.js';
import { HttpModule } from '../http/http.module.js';
import { ConsoleSite } from './console-site.js';
import { OperatorConsoleController } from './operator-console.controller.js';
import { ConsoleController } from './console.controller.js';
import { SignInLink } from './sign-in-link.js';

@Module({
  imports: [AccessModule, HttpModule],
  controllers: [ConsoleController, OperatorConsoleController],
  providers: [ConsoleSite, SignInLink],
  exports: [ConsoleSite],
})
export class ConsoleModule {}
